import './required';
export { createAuthServer } from './auth-server';
export type { AuthServer, ClientRegistration } from './auth-server';
export type { ClientResource, ClientWithSecret } from './client-resource';
export type { AuthServerOptions } from './options';
export type { SigningAlgorithm } from './state';
export type { RateLimit } from './token-rate-limit';
