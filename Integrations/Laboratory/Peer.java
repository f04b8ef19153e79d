import java.io.*;
import java.util.concurrent.*;
import okhttp3.*;

/** OkHttp with its cache. A line is a request (number, method, URL, then names and values), and one is an answer (number, status, body, then
 *  names and values). */
class Peer {
    public static void main(String[] arguments) throws IOException {
        var client = new OkHttpClient.Builder().cache(new Cache(new File(arguments[0]), 1L << 30)).followRedirects(false)
                .connectionPool(new ConnectionPool(32, 5, TimeUnit.MINUTES)).build();
        var threads = Executors.newFixedThreadPool(16);
        System.out.println("okhttp " + okhttp3.internal.Version.userAgent());
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            var parts = line.split("\t", -1);
            threads.execute(() -> {
                var answer = parts[0] + "\t" + load(client, parts);
                synchronized (System.out) {
                    System.out.println(answer);
                }
            });
        }
        System.exit(0);
    }

    static String load(OkHttpClient client, String[] parts) {
        var body = parts[1].matches("POST|PUT|PATCH") ? RequestBody.create(null, "x") : null;
        var request = new Request.Builder().url(parts[2]).method(parts[1], body);
        for (int index = 3; index + 1 < parts.length; index += 2) request.header(parts[index], parts[index + 1]);
        try (var response = client.newCall(request.build()).execute()) {
            var line = new StringBuilder(response.code() + "\t" + response.body().string().replaceAll("\\s", ""));
            for (var name : response.headers().names())
                line.append("\t").append(name.toLowerCase()).append("\t").append(String.join(", ", response.headers(name)));
            return line.toString();
        } catch (IOException error) {
            return "0\t";
        }
    }
}
