import { AUTH_SERVER_PACKAGES, requirePackages } from 'tillgate/internal';

// Runs before the modules below are loaded: the compiler keeps the order in CommonJS.
requirePackages('@tillgate/cli', AUTH_SERVER_PACKAGES);

export { createAuthServer } from './auth-server';
export type { AuthServer, ClientRegistration } from './auth-server';
export type { ChangedClient, ClientResource, ClientWithSecret } from './clients-api';
export type { AuthServerOptions } from './options';
export type { RateLimit } from 'tillgate/env';
