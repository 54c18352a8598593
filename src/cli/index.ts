export { createAuthServer } from './auth-server/index';
export type {
  AuthServer,
  AuthServerOptions,
  ChangedClient,
  ClientRegistration,
  ClientResource,
  ClientWithSecret,
  RateLimit,
} from './auth-server/index';
export { startBridge } from './bridge/bridge';
export type { Bridge, BridgeOptions, BridgeState, ChangeReports, CredentialChange } from './bridge/bridge';
export { keycloakChanges } from './bridge/keycloak';
export type { KeycloakChangesOptions, KeycloakCursor } from './bridge/keycloak';
