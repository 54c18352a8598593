import { AUTHLIB } from './authlib';
import { BETTER_AUTH } from './better-auth';
import { DJANGO } from './django';
import { HYDRA } from './hydra';
import { KEYCLOAK } from './keycloak';
import { MOCK_OAUTH2_SERVER } from './mock-oauth2-server';
import { OAUTH2_MOCK_SERVER } from './oauth2-mock-server';
import { OIDC_PROVIDER } from './oidc-provider';
import { SPRING } from './spring';
import { ZITADEL_OIDC } from './zitadel-oidc';
import type { AuthorizationServer } from './run-server';

/** What `npm run servers` runs; most start in less than a minute. */
export const SERVERS: readonly AuthorizationServer[] = [
  KEYCLOAK,
  OIDC_PROVIDER,
  BETTER_AUTH,
  DJANGO,
  AUTHLIB,
  MOCK_OAUTH2_SERVER,
  OAUTH2_MOCK_SERVER,
];

/** Those that have to be built first are run by name only. */
export const BUILT_SERVERS: readonly AuthorizationServer[] = [...HYDRA, ...SPRING, ZITADEL_OIDC];
