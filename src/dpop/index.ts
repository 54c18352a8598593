export { memoryReplayStore } from '../token/possession/replay-store';
export type { ReplayStore } from '../token/possession/replay-store';
export { redisReplayStore } from './redis-replay-store';
