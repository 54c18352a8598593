/**
 * A test runner for Stryker on top of Jest. Jest starts once per worker and loads the suites once; after that this file
 * runs the tests that reach a mutant, in the same modules, which takes milliseconds instead of a start of Jest. A test
 * that fails is run again without the mutant: if it still fails, its suite is loaded again and the mutant gets a second
 * try. Code that runs while a module loads needs a new load for each mutant.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { performance } from 'node:perf_hooks';
import { clearTimeout, setTimeout } from 'node:timers';
import { PluginKind, declareClassPlugin } from '@stryker-mutator/api/plugin';
import { DryRunStatus, MutantRunStatus, TestStatus } from '@stryker-mutator/api/test-runner';
import { runCLI } from 'jest';

/** For the dry run; later a test may take four times as long as in the dry run, and this much more. */
const TEST_TIMEOUT_MS = 120_000;
const EXTRA_MS = 4_000;
/** Slower tests run for no mutant: they make many keys or entries, and others reach the same code. */
const SLOW_TEST_MS = 400;
/** So often a mutant may run before it counts as an endless loop. */
const MAX_HITS = 1_000_000;
/** Written by the worker that does the dry run, in the sandbox that all workers share. */
const COVERAGE_FILE = 'mutation-coverage.json';

class Runner {
  #session;
  #blocks = new Map();
  #coverage;

  capabilities() {
    return { reloadEnvironment: true };
  }

  async init() {
    this.#session = await startJest();
    const { state } = this.#session;
    for (const block of state.rootDescribeBlock.children) this.#blocks.set(block.name, block);
  }

  async dryRun() {
    const { stryker } = this.#session;
    const tests = [];
    for (const [suite, block] of this.#blocks) {
      await this.#runBlock(block, {
        isWanted: () => true,
        onResult: (result) => void tests.push({ ...result, suite }),
      });
    }
    const mutantCoverage = stryker.mutantCoverage ?? { static: {}, perTest: {} };
    const suiteOf = Object.fromEntries(tests.map(({ id, suite }) => [id, suite]));
    const timeOf = Object.fromEntries(tests.map(({ id, timeSpentMs }) => [id, timeSpentMs]));
    shareHookCoverage(mutantCoverage.perTest, Object.keys(suiteOf));
    writeFileSync(COVERAGE_FILE, JSON.stringify({ suiteOf, timeOf, perTest: mutantCoverage.perTest }));
    return {
      status: DryRunStatus.Complete,
      tests: tests.map(({ id, timeSpentMs, failure }) => ({
        id,
        name: id,
        timeSpentMs,
        status: failure === undefined ? TestStatus.Success : TestStatus.Failed,
        failureMessage: failure,
      })),
      mutantCoverage,
    };
  }

  async mutantRun({ activeMutant, testFilter, hitLimit, reloadEnvironment, sandboxFileName }) {
    this.#coverage ??= JSON.parse(readFileSync(COVERAGE_FILE, 'utf8'));
    const { stryker, global } = this.#session;
    const wanted = new Set(testFilter ?? this.#testsOf(sandboxFileName));
    stryker.hitLimit = hitLimit && Math.min(hitLimit, MAX_HITS);
    let nrOfTests = 0;
    const isWanted = (id) => wanted.has(id) && !(this.#coverage.timeOf[id] > SLOW_TEST_MS);
    const attempt = async (block) => {
      stryker.activeMutant = activeMutant.id;
      stryker.hitCount = hitLimit === undefined ? undefined : 0;
      const failed = await this.#firstFailure(block, isWanted, () => nrOfTests++);
      stryker.activeMutant = undefined;
      return failed;
    };
    const killed = ({ id, failure }) =>
      stryker.hitCount > stryker.hitLimit
        ? { status: MutantRunStatus.Timeout, reason: 'hit limit reached' }
        : { status: MutantRunStatus.Killed, killedBy: [id], failureMessage: failure, nrOfTests };
    try {
      if (reloadEnvironment) global.resetModules();
      for (const suite of this.#suitesOf(wanted, activeMutant.fileName)) {
        if (reloadEnvironment) {
          stryker.activeMutant = activeMutant.id;
          let block;
          try {
            block = this.#load(suite);
          } catch (error) {
            return killed({ id: [...wanted][0] ?? suite, failure: String(error) });
          }
          const failed = await attempt(block);
          if (failed) return killed(failed);
          continue;
        }
        let failed = await attempt(this.#blocks.get(suite));
        if (!failed) continue;
        if ((await this.#firstFailure(this.#blocks.get(suite), (id) => id === failed.id)) === undefined)
          return killed(failed);
        // Something of an earlier run is left in the suite.
        this.#reload(suite);
        failed = await attempt(this.#blocks.get(suite));
        if (!failed) continue;
        this.#reload(suite);
        return killed(failed);
      }
      return { status: MutantRunStatus.Survived, nrOfTests };
    } finally {
      stryker.activeMutant = undefined;
      stryker.hitCount = undefined;
      if (reloadEnvironment) global.resetModules();
    }
  }

  /** The tests that run anything in a file; all tests if that is unknown. */
  #testsOf(file) {
    const ids = [...readFileSync(file, 'utf8').matchAll(/stryMutAct_9fa48\("(\d+)"\)/g)].map(([, id]) => id);
    const { suiteOf, perTest } = this.#coverage;
    const tests = Object.keys(suiteOf).filter((test) => ids.some((id) => perTest[test]?.[id] > 0));
    return tests.length > 0 ? tests : Object.keys(suiteOf);
  }

  /** The suites that have these tests, that of the mutated file first. */
  #suitesOf(tests, fileName) {
    const name = basename(fileName, '.ts');
    const suites = [...new Set([...tests].map((test) => this.#coverage.suiteOf[test]))];
    return suites.sort((a, b) => Number(b.includes(`/${name}.`)) - Number(a.includes(`/${name}.`)));
  }

  #reload(suite) {
    this.#session.global.resetModules();
    this.#blocks.set(suite, this.#load(suite));
  }

  #load(suite) {
    const { state, global } = this.#session;
    const root = state.rootDescribeBlock;
    const { children } = root;
    root.children = [];
    state.hasStarted = false;
    try {
      global.loadSuite(suite);
      return root.children[0];
    } finally {
      root.children = children;
      state.currentDescribeBlock = root;
      state.hasStarted = true;
    }
  }

  async #firstFailure(block, isWanted, onTest = () => undefined) {
    let failed;
    const onResult = (result) => {
      onTest();
      if (result.failure !== undefined) failed ??= result;
      return failed !== undefined;
    };
    await this.#runBlock(block, { isWanted, onResult });
    return failed;
  }

  /** Runs the wanted tests of a describe block with its hooks, until `onResult` returns true; then returns true. */
  async #runBlock(block, run) {
    const { stryker } = this.#session;
    if (block.mode === 'skip' || !hasWanted(block, run.isWanted)) return false;
    stryker.currentTestId = `hooks of ${idOf(block)}`;
    let stopped = false;
    try {
      for (const { fn } of hooksOf(block, 'beforeAll')) await this.#call(fn);
    } catch (error) {
      stopped = run.onResult({ id: firstWanted(block, run.isWanted), timeSpentMs: 0, failure: messageOf(error) });
    }
    for (const child of block.children) {
      if (stopped) break;
      if (child.type === 'describeBlock') stopped = await this.#runBlock(child, run);
      else if (isRun(child) && run.isWanted(idOf(child))) stopped = run.onResult(await this.#runTest(child)) === true;
    }
    stryker.currentTestId = `hooks of ${idOf(block)}`;
    for (const { fn } of hooksOf(block, 'afterAll')) await this.#call(fn).catch(() => undefined);
    stryker.currentTestId = undefined;
    return stopped;
  }

  async #runTest(test) {
    const { stryker, global } = this.#session;
    const { expect } = global;
    const id = idOf(test);
    const blocks = ancestors(test);
    const errors = [];
    const startedMs = performance.now();
    stryker.currentTestId = id;
    expect.setState({ assertionCalls: 0, expectedAssertionsNumber: null, isExpectingAssertions: false });
    const uncaught = new Map();
    this.#session.uncaught = uncaught;
    try {
      for (const block of blocks) for (const { fn } of hooksOf(block, 'beforeEach')) await this.#call(fn);
      await this.#call(test.fn, id);
    } catch (error) {
      errors.push(error);
    }
    for (const block of blocks.reverse())
      for (const { fn } of hooksOf(block, 'afterEach')) await this.#call(fn).catch((error) => errors.push(error));
    errors.push(...expect.extractExpectedAssertionsErrors().map(({ error }) => error));
    errors.push(...uncaught.values());
    this.#session.uncaught = undefined;
    stryker.currentTestId = undefined;
    const failure = errors.length > 0 ? messageOf(errors[0]) : undefined;
    return { id, timeSpentMs: performance.now() - startedMs, failure };
  }

  async #call(fn, test) {
    let timer;
    const timeoutMs = this.#coverage ? EXTRA_MS + 4 * (this.#coverage.timeOf[test] ?? 0) : TEST_TIMEOUT_MS;
    const timeUp = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error('the test takes too long')), timeoutMs);
    });
    const done = () => new Promise((resolve, reject) => void fn((error) => (error ? reject(error) : resolve())));
    try {
      await Promise.race([fn.length > 0 ? done() : (async () => fn())(), timeUp]);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Resolves as soon as the suites are loaded; Jest itself waits then. `environment.cjs` is the other half. */
function startJest() {
  return new Promise((resolve, reject) => {
    globalThis[Symbol.for('mutation.session')] = resolve;
    const argv = { $0: 'mutation', _: [], config: 'test/mutation/jest.config.ts', runInBand: true, silent: true };
    runCLI(argv, [process.cwd()]).then(({ results }) => {
      reject(new Error(results.testResults.map(({ failureMessage }) => failureMessage).join('\n') || 'Jest ended'));
    }, reject);
  });
}

/** What hooks reach counts for each test of their block. */
function shareHookCoverage(perTest, tests) {
  for (const name of Object.keys(perTest).filter((id) => id.startsWith('hooks of '))) {
    const block = name.slice('hooks of '.length);
    for (const test of tests.filter((id) => id.startsWith(`${block} `)))
      for (const [mutant, hits] of Object.entries(perTest[name])) {
        const own = (perTest[test] ??= {});
        own[mutant] = (own[mutant] ?? 0) + hits;
      }
    delete perTest[name];
  }
}

function hasWanted(block, isWanted) {
  return firstWanted(block, isWanted) !== undefined;
}

function firstWanted(block, isWanted) {
  for (const child of block.children) {
    if (child.type === 'test' && (!isRun(child) || !isWanted(idOf(child)))) continue;
    const found = child.type === 'test' ? idOf(child) : firstWanted(child, isWanted);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isRun({ mode }) {
  return mode !== 'skip' && mode !== 'todo';
}

function hooksOf({ hooks }, type) {
  return hooks.filter((hook) => hook.type === type);
}

/** The describe blocks around a test, outermost first. */
function ancestors({ parent }) {
  return parent === undefined ? [] : [...ancestors(parent), parent];
}

function idOf(item) {
  const names = ancestors(item).map(({ name }) => name);
  return [...names.slice(1), item.name].join(' ');
}

function messageOf(error) {
  return String(error?.message ?? error);
}

export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, 'tillgate', Runner)];
