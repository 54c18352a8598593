export type { Possession } from './possession';
export { dpop } from './dpop';
export type { DpopOptions } from './dpop';
export { mtls } from './mtls';
export type { MtlsOptions } from './mtls';
export type { ReplayStore } from './replay-store';
