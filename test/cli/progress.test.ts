import { withProgress } from '../../src/cli/run';
import type { CliIo } from '../../src/cli/command';
import { fakeTime } from '../support/fake-time';

const CLEAR = '\r\u001b[K';

function scene(terminal: { isTTY?: boolean; columns?: number } = { isTTY: true, columns: 60 }) {
  const time = fakeTime();
  const written: string[] = [];
  let respond: (response: Response) => void = () => {};
  const given: CliIo = {
    env: {},
    cwd: '.',
    stdout: { write: (text) => written.push(`out ${text}`) },
    stderr: { ...terminal, write: (text) => written.push(text) },
    fetch: () => new Promise((resolve) => (respond = resolve)),
    readStdin: () => Promise.resolve(''),
    untilStopped: () => Promise.resolve(),
    programName: 'tillgate',
  };
  const { io, stop } = withProgress(given, 'tillgate check', time.schedule);
  return { time, written, io, stop, given, respond: () => respond(new Response()) };
}

describe('a command that takes more than a second', () => {
  it('says so in one line of a terminal, with the server that it waits for', async () => {
    const { time, written, io, respond, stop } = scene();
    await time.advance(999);
    expect(written).toEqual([]);
    const response = io.fetch('https://user:geheim@login.test/.well-known/openid-configuration?x=y');
    await time.advance(2_001);
    respond();
    await response;
    await time.advance(1_000);
    stop();
    await time.advance(10_000);
    expect(written).toEqual([
      `${CLEAR}tillgate check waits for https://login.test, 1 s`,
      `${CLEAR}tillgate check waits for https://login.test, 2 s`,
      `${CLEAR}tillgate check waits for https://login.test, 3 s`,
      `${CLEAR}tillgate check, 4 s`,
      CLEAR,
    ]);
  });

  it('takes the line away before a log line, and for good before its result', async () => {
    const { time, written, io } = scene();
    await time.advance(1_000);
    io.stderr.write('log\n');
    await time.advance(1_000);
    io.stdout.write('result\n');
    io.stderr.write('log\n');
    await time.advance(10_000);
    expect(written).toEqual([
      ...[`${CLEAR}tillgate check, 1 s`, CLEAR, 'log\n'],
      ...[`${CLEAR}tillgate check, 2 s`, CLEAR, 'out result\n', 'log\n'],
    ]);
    expect(time.pending).toBe(0);
  });

  it('stays away while input is read', async () => {
    const { time, written, io } = scene();
    await time.advance(1_000);
    await io.readStdin();
    await time.advance(10_000);
    expect(written).toEqual([`${CLEAR}tillgate check, 1 s`, CLEAR]);
  });

  it('fits into a narrow terminal', async () => {
    const { time, written } = scene({ isTTY: true, columns: 10 });
    await time.advance(1_000);
    expect(written).toEqual([`${CLEAR}tillgate `]);
  });

  it('says nothing where stderr is not a terminal', async () => {
    const { time, written, io, given, stop } = scene({});
    await time.advance(10_000);
    stop();
    expect(written).toEqual([]);
    expect(io).toBe(given);
  });
});
