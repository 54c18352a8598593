export { createAuthServer } from './auth-server';
export type { AuthServer, ClientRegistration } from './auth-server';
export type { ChangedClient, ClientResource, ClientWithSecret } from './clients-api';
export type { AuthServerOptions } from './options';
export type { RateLimit } from 'tillgate/env';
