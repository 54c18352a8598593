export { memoryGenerations, type MemoryGenerationsOptions, type MemoryLog, type ServedLog } from './memory';
export { httpGenerations, type HttpGenerationsOptions } from './http/log';
export { postgresGenerations, type PostgresGenerationsOptions } from './postgres/log';
export type { PostgresClient, PostgresPool, PostgresResult } from './postgres/connection';
export { postgresSchema } from './postgres/schema';
export { redisGenerations, type RedisGenerationsOptions } from './redis/log';
export type { IoredisClient, NodeRedisClient, RedisClient } from './redis/connection';
export { startPublisher, type Publisher, type PublisherOptions, type PublisherStatus } from './publisher';
export type { Batch, Change, GenerationLog, GenerationSource, LogReader, Mark, Unit } from './log';
