import type { RequestHandler } from 'express';

/** What the suites use of express-oauth2-jwt-bearer, whose own declarations would decide the type of `req.auth`. */
export declare function auth(options: object): RequestHandler;
export declare function requiredScopes(scopes: string | string[]): RequestHandler;
export declare function scopeIncludesAny(scopes: string | string[]): RequestHandler;
