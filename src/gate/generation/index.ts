export type { Schedule, Timer } from '../core/clock';
export { memoryGenerations, type MemoryGenerationsOptions, type MemoryLog, type ServedLog } from './memory';
export { httpGenerations, type HttpGenerationsOptions } from './http/log';
export type { Batch, Change, GenerationLog, GenerationSource, LogReader, Mark, Unit } from './log';
export { describeFailure, isSameMark, noResponse, requireFormat, SourceError } from './log';
export { isEarly, isGeneration, requireChange } from './generation';
export { readersOf, type Wait } from './readers';
