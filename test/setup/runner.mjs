// Jest's runner for `npm test`: suites run in plain Node, many in one process, by jest-light-runner's way to run one. Its
// own pool waits for ever now and then, and kills processes that write their coverage.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { compile, OPTIONS } from './compile.mjs';

/** Suites send many short-lived requests: V8 then copies less of them from one half of its young generation to the other. */
const YOUNG_GENERATION = '--max-semi-space-size=64';
const WORKER = fileURLToPath(new URL('./worker.mjs', import.meta.url));

export default class PlainNodeRunner {
  #globalConfig;
  #alone;
  #together;

  /**
   * @param options - endings of paths: of suites that get a process of their own (`alone`), and of suites that run one after the
   *   other in one process (`together`)
   */
  constructor(globalConfig, _context, { alone, together }) {
    this.#globalConfig = globalConfig;
    this.#alone = alone;
    this.#together = together;
  }

  async runTests(tests, watcher, onStart, onResult, onFailure) {
    const isOf = (endings) => (test) => endings.some((ending) => test.path.endsWith(ending));
    const [isAlone, isTogether] = [isOf(this.#alone), isOf(this.#together)];
    const others = tests.filter((test) => !isAlone(test) && !isTogether(test));
    // First, because they take as long as the longest suite. Those with a process of their own are last, so that none of
    // several suites has to end for one of them.
    const groups = [tests.filter(isTogether), ...[...others, ...tests.filter(isAlone)].map((test) => [test])];
    const { rootDir } = this.#globalConfig;
    const { outdir, remove } = await compile(rootDir);
    const compiled = { rootDir, outdir, options: OPTIONS };
    const runInTurn = async () => {
      let worker;
      let own = [];
      while ((own.length > 0 || groups.length > 0) && !watcher.isInterrupted()) {
        if (own.length === 0) own = groups.shift();
        const test = own.shift();
        if (test === undefined) continue;
        if (isAlone(test)) await worker?.end();
        if (worker?.hasEnded()) worker = undefined;
        worker ??= startWorker({ globalConfig: this.#globalConfig, projectConfig: test.context.config, compiled });
        await onStart(test);
        await worker.run(test.path).then(
          (result) => onResult(test, result),
          (error) => onFailure(test, error),
        );
      }
      await worker?.end();
    };
    await Promise.all(Array.from({ length: this.#globalConfig.maxWorkers }, runInTurn)).finally(remove);
  }
}

function startWorker(configuration) {
  const child = fork(WORKER, {
    execArgv: [YOUNG_GENERATION, '--conditions=source'],
  });
  child.send(configuration);
  const exited = once(child, 'exit');
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  return {
    hasEnded,
    async run(path) {
      child.send({ path });
      const ended = exited.then(([code, signal]) => {
        throw new Error(`the process of this suite has ended: ${signal ?? `exit code ${code}`}`);
      });
      const [{ result, error }] = await Promise.race([once(child, 'message'), ended]);
      if (error) throw error;
      return result;
    },
    async end() {
      if (!hasEnded()) child.disconnect();
      await exited;
    },
  };
}
