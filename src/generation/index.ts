export { memoryGenerations } from './memory';
export type { MemoryGenerationsOptions } from './memory';
export { httpGenerations } from './http';
export type { HttpGenerationsOptions } from './http';
export type { Floor, GenerationSnapshot, GenerationSource } from './source';
