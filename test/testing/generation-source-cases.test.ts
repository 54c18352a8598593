import { memoryGenerations } from '../../src/generation/memory';
import { generationSourceCases } from '../../src/testing/index';
import type { GenerationSourceCasesOptions, GenerationSourceFixture } from '../../src/testing/index';
import { overHttp, overRelay } from './feed-fixture';

function overMemory(): Promise<GenerationSourceFixture> {
  const source = memoryGenerations();
  return Promise.resolve({ source, another: () => Promise.resolve(source), close: () => source.close() });
}

describe('memoryGenerations', () => {
  it.each(generationSourceCases({ create: overMemory }))('$name', ({ run }) => run());
});

describe('httpGenerations at the feed of the embedded token server', () => {
  it.each(generationSourceCases({ create: overHttp }))('$name', ({ run }) => run());
});

describe('httpGenerations at a relay', () => {
  it.each(generationSourceCases({ create: overRelay }))('$name', ({ run }) => run());
});

describe('generationSourceCases()', () => {
  it('closes the fixture of every case, also of one that fails', async () => {
    const closed: string[] = [];
    const create = (): Promise<GenerationSourceFixture> =>
      Promise.resolve({
        source: { read: () => Promise.reject(new Error('down')) },
        publish: () => Promise.reject(new Error('down')),
        close: () => Promise.resolve(void closed.push('closed')),
      });
    const cases = generationSourceCases({ create });
    const results = await Promise.allSettled(cases.map(({ run }) => run()));
    expect(results.some(({ status }) => status === 'rejected')).toBe(true);
    expect(closed).toHaveLength(cases.length);
  });

  it('needs a way to write', async () => {
    const source = { read: () => Promise.resolve({ floors: [], nowMs: Date.now() }) };
    const [first] = generationSourceCases({
      create: () => Promise.resolve({ source, close: () => Promise.resolve() }),
    });
    await expect(first?.run()).rejects.toThrow('the source has no publish(), so the fixture must have one');
  });

  it.each([
    [undefined, /expected an options object, got undefined/],
    [{}, /option "create" must be a function, got undefined/],
    [{ create: overMemory, timeout: 5 }, /unknown option "timeout"; did you mean "timeoutMs"/],
    [{ create: overMemory, timeoutMs: 0 }, /option "timeoutMs"/],
  ])('refuses the options %j', (options, message) => {
    const make = (): unknown => generationSourceCases(options as unknown as GenerationSourceCasesOptions);
    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
  });
});
