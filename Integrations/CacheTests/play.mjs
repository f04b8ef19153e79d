// Plays https://github.com/http-tests/cache-tests, by its own engine, to `SuiteProxy`, and writes what it finds in the suite's form, as its
// `results` have it; and so for our rows about what the suite has none of. By hand, since the checkout is not here:
//
//   swift build --package-path Integrations --product SuiteProxy
//   node Integrations/CacheTests/play.mjs CHECKOUT Integrations/.build/debug/SuiteProxy

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const [checkout, program] = [resolve(process.argv[2]), resolve(process.argv[3])]
const { runTests, getResults } = await import(`${checkout}/test-engine/client/runner.mjs`)
const { determineTestResult, resultTypes } = await import(`${checkout}/test-engine/lib/results.mjs`)
const { default: allSuites } = await import(`${checkout}/tests/index.mjs`)
const { default: ownSuites } = await import('../../Tests/cache-tests-standards.mjs')

// Rows about interim responses need the package `undici`, 7 or later, in the checkout. The suite counts those without a result as not tested.
async function seesInterims () {
    try {
        const { Agent } = await import(createRequire(`${checkout}/`).resolve('undici'))
        return 'compose' in Agent.prototype
    } catch {
        return false
    }
}
const canSeeInterims = await seesInterims()
const suites = allSuites.map(suite => ({
    ...suite,
    tests: suite.tests.filter(test => canSeeInterims || !test.requests.some(request => 'expected_interim_responses' in request))
}))

async function freePort () {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address()
    server.close()
    return port
}

const folder = mkdtempSync(join(tmpdir(), 'cache-tests-'))
const port = await freePort()
const settings = { npm_config_port: port, npm_config_protocol: 'http', npm_config_pidfile: join(folder, 'pid') }
const server = spawn('node', ['test-engine/server/server.mjs'], { cwd: checkout, env: { ...process.env, ...settings }, stdio: 'ignore' })
const proxy = spawn(program, [`http://127.0.0.1:${port}`, join(folder, 'cache')], { stdio: ['pipe', 'pipe', 'inherit'] })
const ended = once(proxy, 'exit').then(() => { throw new Error('SuiteProxy has ended') })
ended.catch(() => {})
try {
    const [line] = await Promise.race([once(createInterface({ input: proxy.stdout }), 'line'), ended])
    for (let tries = 0; tries < 100 && !await fetch(`http://127.0.0.1:${port}/`).then(() => true, () => false); tries++) {
        await new Promise(resolve => setTimeout(resolve, 100))
    }
    const base = `http://127.0.0.1:${line}`
    await runTests(suites, false, base)
    // One after the other, since what invalidates a group does so for all of an origin.
    await runTests(ownSuites, false, base, 1)
} finally {
    server.kill()
    proxy.stdin.end()
    await ended.catch(() => {})
    rmSync(folder, { recursive: true })
}

const all = getResults()
const names = new Map(Object.entries(resultTypes).map(([name, type]) => [type, name]))
for (const [file, some] of [['diskurlcache', suites], ['diskurlcache-standards', ownSuites]]) {
    const tests = some.flatMap(suite => suite.tests).filter(test => test.id in all)
    const results = Object.fromEntries(tests.map(test => test.id).sort().map(id => [id, all[id]]))
    writeFileSync(join(here, `${file}.json`), JSON.stringify(results, null, 2) + '\n')
    console.log(file)
    const judged = tests.map(test => ({ test, name: names.get(determineTestResult(some, test.id, results)) }))
    for (const { test, name } of judged) {
        if (!['pass', 'yes', 'no'].includes(name)) console.log(`  ${name} ${test.id}: ${results[test.id][1]}`)
    }
    for (const kind of ['required', 'optimal', 'check']) {
        const ofKind = judged.filter(({ test }) => (test.kind ?? 'required') === kind)
        console.log(`  ${kind}: ${ofKind.filter(({ name }) => ['pass', 'yes'].includes(name)).length} of ${ofKind.length}`)
    }
}
