export { memoryGenerations } from './memory';
export type { MemoryGenerationsOptions } from './memory';
export { httpGenerations } from './http';
export type { HttpGenerationsOptions } from './http';
export { postgresGenerations } from './postgres';
export type { PostgresGenerationsOptions } from './postgres';
export type { PostgresClient, PostgresPool, PostgresResult } from './postgres-pool';
export { postgresSchema } from './postgres-table';
export type { Floor, GenerationSnapshot, GenerationSource } from './source';
