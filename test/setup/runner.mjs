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

  /** @param options - `alone`: endings of the paths of suites that get a process of their own */
  constructor(globalConfig, _context, { alone }) {
    this.#globalConfig = globalConfig;
    this.#alone = alone;
  }

  async runTests(tests, watcher, onStart, onResult, onFailure) {
    const isAlone = ({ path }) => this.#alone.some((ending) => path.endsWith(ending));
    // Last, so that no process of several suites has to end for one of them.
    const waiting = [...tests.filter((test) => !isAlone(test)), ...tests.filter(isAlone)];
    const { rootDir } = this.#globalConfig;
    const { outdir, remove } = await compile(rootDir);
    const compiled = { rootDir, outdir, options: OPTIONS };
    const runInTurn = async () => {
      let worker;
      while (waiting.length > 0 && !watcher.isInterrupted()) {
        const test = waiting.shift();
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
