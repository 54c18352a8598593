import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { generator, pinned } from '../load';

const run = promisify(execFile);

/** The core that the server does not have. */
const LOAD_CORE = '1';

/** Forms that are posted one after the other, again and again, over 32 connections. */
export interface FormLoad {
  readonly url: string;
  /** A file with one form a line. */
  readonly file: string;
  readonly seconds: number;
}

/** What came back. */
export interface Answers {
  readonly answered: number;
  readonly seconds: number;
  /** Answers that are not 2xx. */
  readonly refused: number;
  /** Requests without an answer. */
  readonly failed: number;
}

/**
 * Posts forms, as many as are answered.
 *
 * @throws Error when anything but a token came back: a refusal is quick, and would count for nothing
 */
export async function postForms({ url, file, seconds }: FormLoad): Promise<Answers> {
  const [command, args] =
    generator === 'wrk'
      ? pinned(LOAD_CORE, 'wrk', ['-t1', '-c32', `-d${seconds}s`, '-s', join(__dirname, 'load.lua'), url, '--', file])
      : pinned(LOAD_CORE, process.execPath, [join(__dirname, 'load-autocannon.mjs'), url, file, String(seconds)]);
  const { stdout } = await run(command, args);
  const answers = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Answers;
  if (answers.refused + answers.failed > 0)
    throw new Error(`${url}: not every request got a token: ${JSON.stringify(answers)}`);
  return answers;
}
