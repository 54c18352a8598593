import './required';
export { createAuthServer } from './auth-server';
export type { AuthServer, ClientRegistration } from './auth-server';
export type { ChangedClient, ClientResource, ClientWithSecret } from './clients/client';
export type { AuthServerOptions, RateLimit } from './options';
export type { SigningAlgorithm } from './storage/state';
