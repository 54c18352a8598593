/*
 * The seam: what the other packages of the same version use and no public entry has, with the reason for each. No promise to anybody else.
 * test/repository/layers.test.ts counts it: the list grew once, to at most 50, when the stores became a room, and gets shorter otherwise.
 */

// Servers of the kit and commands wait with the timers that the gate uses.
export { systemSchedule } from './core/clock';
// Logs of stores wait for their engine no longer than a limit.
export { withTimeLimit } from './core/clock';
// Callbacks of a publisher's app are called as those of a gate.
export { called, callUnwaited } from './core/callbacks';
// The command prints what others sent without control characters of a terminal.
export { escapeUnsafe } from './core/logger';
// A log and the console show paths without tokens in them.
export { loggablePath } from './core/logger';
// A publisher logs errors as the gate does.
export { errorText } from './core/logger';
// Code that may throw has one form in all rooms.
export { attempt } from './core/objects';
// Parsed JSON is checked in one way in all rooms.
export { isObject } from './core/objects';
// A member of parsed JSON is read without that of a polluted prototype.
export { ownValue } from './core/objects';
// Factories of other rooms take clock, fetch and logger as authenticate() does.
export { dependencies } from './core/options';
// Messages show a wrong value as authenticate() does.
export { describe } from './core/words';
// Misspelt names get the same help everywhere.
export { didYouMean } from './core/words';
// Factories of other rooms describe their options in the tables of authenticate().
export { option } from './core/options';
// Factories of other rooms read their options as authenticate() does.
export { readOptions } from './core/options';
// An option that depends on another one is refused as authenticate() does.
export { refuseOption } from './core/options';
// The place of an option in such a message.
export type { OptionPlace } from './core/options';
// A publisher logs the outage of its log once, and its end.
export { Outage } from './core/outage';
// Stores and the gate load optional peers, with a check of the version, in one way.
export { loadPeer } from './core/optional-peers';
// The type of one row of such a table.
export type { Option } from './core/options';
// The type of a table of options.
export type { TableOf } from './core/options';
// The type of options that have been read.
export type { ValuesOf } from './core/options';
// Token server and console refuse pages of other origins and hosts.
export { foreignCaller } from './core/urls';
// The URL of the token server never names an address that can only be listened on.
export { hostInUrl } from './core/urls';
// The command sends no secret in the clear to another host.
export { isSecureUrl } from './core/urls';
// The bridge authenticates at a token endpoint as the gate does for introspection.
export { clientAuthorization } from './core/urls';
// URLs are printed without passwords.
export { loggableUrl } from './core/urls';
// A URL of a store is parsed without repeating it in an error.
export { parseUrl } from './core/urls';
// Audits read what a guard demands.
export { requirementOf } from './express/guard';
// The console shows the checks up to the one that refused.
export { checksUntil } from './express/diagnosis/explain';
// The command opens the source that TILLGATE_GENERATIONS names.
export { generationsFromUrl } from './generation/from-url';
// A publisher keeps changes as long as a follower needs them.
export { keptMsOf } from './generation/floors';
// A publisher measures that on a clock that does not step.
export { steadyTime } from './generation/floors';
// Publisher and gate have one option for it.
export { TOKEN_AGE_OPTION } from './generation/floors';
// Token server and test issuer serve their log as an http: source expects it.
export { logHandler } from './generation/http/handler';
// Advice about a token depends on the options of its gate.
export { adviceContext } from './express/diagnosis/advice';
// tillgate explain proposes the settings that would accept a token.
export { configurationAdvice } from './express/diagnosis/advice';
// tillgate check proposes the preset of an issuer.
export { recognizeIssuer } from './express/diagnosis/recognition';
// check and explain say why scopes of a token grant nothing.
export { scopeAdvice } from './express/diagnosis/advice';
// tillgate check lists the claims that may hold scopes.
export { scopeClaims } from './express/diagnosis/advice';
// Bodies are read up to a limit.
export { readBody } from './net/http';
// explain, token and the console show what is in a token, unverified.
export { parseToken } from './token/jws';
// The command finds endpoints by the metadata that the gate reads.
export { discoverEndpoint } from './token/keys/fetch-keys';
// check and explain name presets by their table.
export { PRESETS } from './token/presets';
// tillgate check reads the scopes of a claim as the gate does.
export { namesOfClaim } from './token/scopes';
// The testing kit makes tokens in the shape that the gate of an app expects.
export { gateOf } from './verifier/gate-verifier';
// The table of those.
export { ALGORITHMS } from './token/signature';
