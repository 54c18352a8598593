import { Follower } from '../../src/gate/generation/follower';
import { logHandler } from '../../src/gate/generation/http/handler';
import { httpGenerations } from '../../src/gate/generation/http/log';
import { memoryGenerations } from '../../src/gate/generation/memory';
import { startPublisher } from '../../src/stores/publisher';
import { FAULTS } from './faults';
import { planOf } from './plan';
import { withFault } from './plant';
import { runWorlds, seedsFrom } from './run';
import { World } from './world';

const SUBJECT = { Follower, logHandler, httpGenerations, memoryGenerations, startPublisher };

/** `npm run simulate -- --seeds N` runs more of them, `npm run test:all` 5,000. */
const WORLDS = 100;

describe('the promise of generations, simulated', () => {
  it(`is kept in ${WORLDS} worlds: publisher, log, links and clocks that fail`, async () => {
    const { worlds, decisions, broken } = await runWorlds(seedsFrom(1, WORLDS), SUBJECT);
    expect(broken).toEqual([]);
    expect(worlds).toBe(WORLDS);
    expect(decisions).toBeGreaterThan(100 * WORLDS);
  });

  it('is the same story each time', async () => {
    const tell = async (): Promise<readonly string[]> => {
      const lines: string[] = [];
      await new World(planOf(3), SUBJECT, (line) => lines.push(line)).run();
      return lines;
    };
    const story = await tell();
    expect(story.length).toBeGreaterThan(50);
    expect(await tell()).toEqual(story);
  });

  it.each(FAULTS)('can plant a fault: $name', (fault) => {
    expect(withFault(fault)).toContain(fault.to);
  });
});
