/*
 * The seam: what other rooms of the same version use and no public entry has, with the reason for each. No promise to
 * anybody else. test/repository/layers.test.ts counts it: the list gets shorter, never longer.
 */

// tillgate routes lists the routes of the scaffold.
export { routes } from './commerce/resources';
// tillgate dev registers clients with the scopes of the scaffold.
export { SCOPES } from './commerce/resources';
// tillgate routes reads the guards of the scaffold.
export { commerceRouter } from './commerce/router';
// A loaded app is logged as the scaffold is.
export { logRequest } from './log';
// The token server logs requests that Node could not read.
export { logUnreadable } from './log';
// A loaded app is observed as the scaffold is.
export { requestObserver } from './log';
// What observes the requests of an app.
export type { RequestObserver } from './log';
// A loaded app is warned of as the scaffold is.
export { warningsOf } from './log';
// The token server listens as the scaffold does.
export { startServer } from './serve';
