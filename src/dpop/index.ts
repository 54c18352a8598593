export { memoryReplayStore } from '../token/possession/dpop';
export type { ReplayStore } from '../token/possession/dpop';
export { redisReplayStore } from './redis-replay-store';
