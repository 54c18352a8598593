export { startBridge } from './bridge/bridge';
export type { Bridge, BridgeOptions, BridgeState, ChangeFeed, CredentialChange } from './bridge/bridge';
export { keycloakChanges } from './bridge/keycloak';
export type { KeycloakChangesOptions, KeycloakCursor } from './bridge/keycloak';
export { memoryGenerations } from './memory';
export type { MemoryGenerationsOptions } from './memory';
export { generationsFeed } from './feed/relay';
export type { GenerationsFeed, GenerationsFeedOptions, GenerationsFeedStatus } from './feed/relay';
export { httpGenerations } from './http/source';
export type { HttpGenerationsOptions } from './http/source';
export { postgresGenerations } from './postgres/source';
export type { PostgresGenerationsOptions } from './postgres/source';
export type { PostgresClient, PostgresPool, PostgresResult } from './postgres/sessions';
export { postgresSchema } from './postgres/table';
export { redisGenerations } from './redis/source';
export type { RedisGenerationsOptions } from './redis/source';
export type { IoredisClient, NodeRedisClient, RedisClient } from './redis/connection';
export type {
  Floor,
  GenerationSentinel,
  GenerationSnapshot,
  GenerationSource,
  PublishingSource,
  TakePage,
} from './source';
