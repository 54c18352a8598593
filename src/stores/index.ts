export { postgresGenerations, type PostgresGenerationsOptions } from './postgres/log';
export type { PostgresClient, PostgresPool, PostgresResult } from './postgres/connection';
export { postgresSchema } from './postgres/schema';
export { redisGenerations, type RedisGenerationsOptions } from './redis/log';
export type { IoredisClient, NodeRedisClient, RedisClient } from './redis/connection';
export { redisReplayStore } from './replay-store';
export { startPublisher, type Publisher, type PublisherOptions, type PublisherStatus } from './publisher';
