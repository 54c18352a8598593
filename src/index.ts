export { AuthError, ConfigurationError } from './core/errors';
export type { Dependencies } from './core/options';
export type { GateStatus } from './core/gate-status';
export type { Logger } from './core/logger';
export { REASONS } from './core/reasons';
export type { Reason } from './core/reasons';
export { authenticate } from './express/authenticate';
export type { Gate } from './express/authenticate';
export type { ScopeDeclaration } from './gate/scope-table';
export type { HoldEnd } from './gate/held';
export type { StepUp } from './core/problem';
export {
  defineScopes,
  endWithToken,
  requireAuthenticated,
  requireAuthentication,
  requireClaim,
  requireScope,
} from './express/guard';
export type { CurrentScope, DefinedScopes } from './express/guard';
export { protectedResourceMetadata } from './express/metadata';
export { authOf } from './express/request-state';
export type { Middleware } from './express/request-state';
export { problemHandler, refuseUpgrade, sendProblem } from './express/respond';
export type { ProblemResponse } from './express/respond';
export { signalsReceiver } from './express/signals-receiver';
export { explain } from './gate/explain';
export type { Explanation } from './gate/explain';
export type { Auth, AuthenticateOptions, Decision, GateOptions, IssuerOptions } from './gate/options';
export type { SignalsReceiverOptions } from './gate/security-events';
export type { IntrospectionOptions } from './token/introspection/endpoint';
export type { MtlsOptions } from './token/possession/possession';
export type { DpopOptions } from './token/possession/dpop';
export type { KeyStore } from './token/keys/key-store';
export type { ReplayStore } from './token/possession/replay-store';
export type { ScopeOptions } from './token/scopes';
export type { PresetName } from './token/presets';
