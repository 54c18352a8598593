import { redisGenerations } from '../../../src/generation/redis/source';
import type { PublishingSource } from '../../../src/generation/source';
import { fakeTime } from '../../support/fake-time';
import type { FakeTime } from '../../support/fake-time';
import { START, keptLog } from '../fixtures';
import { FakeRedis } from './fake';
import type { FakeClient } from './fake';

/** A watch of the source, after a first read. */
interface Watched {
  readonly wake: jest.Mock;
  readonly lost: jest.Mock;
  readonly stop: () => void;
  readonly subscriber: FakeClient;
  /** Time of the read. */
  readonly nowMs: number;
}

/** A source on a fake Redis and fake time. */
export function open(): {
  readonly time: FakeTime;
  readonly redis: FakeRedis;
  readonly client: FakeClient;
  readonly source: PublishingSource;
  readonly watch: () => Promise<Watched>;
} {
  const time = fakeTime(START);
  const redis = new FakeRedis();
  const client = redis.connect();
  const source = redisGenerations({ client, clock: time.clock, schedule: time.schedule, logger: keptLog() });
  const watch = async () => {
    const [wake, lost] = [jest.fn(), jest.fn()];
    const stop = await source.watch(wake, lost);
    return { wake, lost, stop, subscriber: redis.clients.at(-1)!, nowMs: (await source.read(0)).nowMs };
  };
  return { time, redis, client, source, watch };
}
