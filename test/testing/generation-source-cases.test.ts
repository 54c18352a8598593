import { memoryGenerations } from '../../src/generation/memory';
import { generationSourceCases } from '../../src/testing/index';
import type { GenerationSourceFixture } from '../../src/testing/index';

function overMemory(): Promise<GenerationSourceFixture> {
  const source = memoryGenerations();
  return Promise.resolve({ source, another: () => Promise.resolve(source), close: () => source.close() });
}

describe('generationSourceCases() over memoryGenerations()', () => {
  it.each(generationSourceCases({ create: overMemory }))('$name', ({ run }) => run());
});
