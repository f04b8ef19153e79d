// The rows of a checkout of https://github.com/http-tests/cache-tests as ConformanceTranscriptionTests reads them. By hand, after a change of
// a row, since the checkout is not here:
//
//   node Tests/DiskURLCacheTests/Fixtures/cache-tests.mjs CHECKOUT >/tmp/rows.json
//   DISKURLCACHE_CONFORMANCE_EXPORT=/tmp/rows.json swift test --filter ConformanceTranscriptionTests

import { execFileSync } from 'node:child_process'
import { resolve } from 'node:path'

// By which the rows were written.
const commit = 'b55b8bd'
const checkout = resolve(process.argv[2])
const here = execFileSync('git', ['-C', checkout, 'rev-parse', 'HEAD'], { encoding: 'utf8' })
if (!here.startsWith(commit)) throw new Error(`the checkout is at ${here.trim()}, not at ${commit}`)
const { default: suites } = await import(`${checkout}/tests/index.mjs`)
const { dateHeaders, locationHeaders } = await import(`${checkout}/test-engine/lib/defines.mjs`)

// As ConformanceTranscriptionTests writes the fields of a row.
const field = request => header => {
    if (typeof header === 'string') return header.toLowerCase() + ': any'
    const name = header[0].toLowerCase()
    if (header[1] === '>') return name + ': > ' + header[2]
    if (dateHeaders.has(name) && Number.isInteger(header[1])) {
        return name + ': ' + (request.rfc850date?.includes(name) ? 'rfc850 ' : 'date ') + header[1]
    }
    if (locationHeaders.has(name) && request.magic_locations) return name + ': URL ' + header[1]
    return name + ': ' + header[1] + (header[2] === false ? ' (unchecked)' : '')
}
const fields = (request, name) => (request[name] ?? []).map(field(request))
const rows = suites.flatMap(suite => suite.tests).map(test => ({
    id: test.id,
    kind: test.kind ?? 'required',
    isSkippedByBrowsers: test.browser_skip ?? false,
    steps: test.requests.map(request => ({
        request: {
            method: request.request_method ?? 'GET',
            suffix: (request.filename ? '/' + request.filename : '') + (request.query_arg ? '?' + request.query_arg : ''),
            fields: fields(request, 'request_headers'),
            body: request.request_body ?? 'none'
        },
        reply: {
            status: request.response_status?.[0] ?? 200,
            fields: fields(request, 'response_headers'),
            body: typeof request.response_body === 'string' ? request.response_body : 'token',
            interim: (request.interim_responses ?? []).map(([status]) => status),
            disconnects: request.disconnect ?? false
        },
        expected: {
            source: request.expected_type ?? 'any',
            status: request.expected_status === null ? 'any' : String(request.expected_status ?? 'as replied'),
            body: request.expected_response_text === null || request.check_body === false ? 'any'
                : request.expected_response_text ?? 'as replied',
            fields: fields(request, 'expected_response_headers'),
            missing: (request.expected_response_headers_missing ?? []).map(name => [].concat(name)[0].toLowerCase()),
            method: request.expected_method ?? 'any',
            requestFields: fields(request, 'expected_request_headers')
        },
        pauses: request.pause_after ?? false
    }))
}))

// Words that the suite makes of other words, as httpContent does: fifteen letters whose codes grow by the same step.
const isMadeUp = word => {
    const steps = [...word].map((letter, i) => i && (letter.charCodeAt() - word.charCodeAt(i - 1) + 26) % 26)
    return new Set(steps.slice(1)).size === 1
}
console.log(JSON.stringify(rows).replace(/\ba[a-z]{14}\b/g, word => isMadeUp(word) ? '(made up)' : word))
