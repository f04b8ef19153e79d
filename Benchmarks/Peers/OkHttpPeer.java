import java.io.*;
import okhttp3.*;

/**
 * The Java side of `run`: OkHttp alone and with its cache, which is on disk.
 *
 * Each line of standard input asks for loads, one after the other, and is answered by the nanoseconds that they took.
 * Its fields are the client, the URL up to the number, the first number, how many, how often, the length of each body,
 * and an entity tag or nothing.
 */
class OkHttpPeer {
    public static void main(String[] arguments) throws IOException {
        var bare = new OkHttpClient();
        var cached = new OkHttpClient.Builder().cache(new Cache(new File(arguments[0]), 4L << 30)).build();
        System.out.println(
                okhttp3.internal.Version.userAgent() + ", Java " + System.getProperty("java.version"));
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            var fields = line.split("\t", -1);
            var client = fields[0].equals("OkHttp") ? bare : cached;
            int first = Integer.parseInt(fields[2]), count = Integer.parseInt(fields[3]);
            int times = Integer.parseInt(fields[4]), length = Integer.parseInt(fields[5]);
            long start = System.nanoTime();
            for (int index = 0; index < count * times; index++) {
                int received = load(client, fields[1] + (first + index % count), fields[6]);
                if (received != length) throw new IOException(received + " bytes for " + line);
            }
            System.out.println(System.nanoTime() - start);
        }
        // Its threads would keep the process for a minute.
        System.exit(0);
    }

    static int load(OkHttpClient client, String url, String entityTag) throws IOException {
        var request = new Request.Builder().url(url);
        if (!entityTag.isEmpty()) request.header("If-None-Match", entityTag);
        try (var response = client.newCall(request.build()).execute()) {
            return response.body().bytes().length;
        }
    }
}
