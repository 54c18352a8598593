import type { Request, RequestHandler, Response } from 'express';
import type { Gate } from 'tillgate';
import { protectedResourceMetadata } from 'tillgate';
import { scopesOf } from './contract';
import type { Contract } from './contract';

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/**
 * Serves what the gate publishes (RFC 9728), with every scope of the API. The gate's option `challengeScopes` would publish
 * them as well, and put them into each 401. Mount `protectedResourceMetadata()` after it, for other methods.
 */
export function resourceMetadata(gate: Gate, contract: Contract, baseUrl: string): RequestHandler {
  const { pathname } = new URL(baseUrl);
  const paths = [WELL_KNOWN, pathname === '/' ? WELL_KNOWN : WELL_KNOWN + pathname];
  const document = { ...documentOf(gate), scopes_supported: scopesOf(contract) };
  return function resourceMetadata({ method, path }, res, next) {
    if (!paths.includes(path) || (method !== 'GET' && method !== 'HEAD')) return next();
    res.set({ 'Access-Control-Allow-Origin': '*', 'Cache-Control': 'public, max-age=300' }).json(document);
  };
}

/** The response of the gate's own middleware. */
function documentOf(gate: Gate): object {
  let document = {};
  const end = (body: Buffer) => (document = JSON.parse(body.toString()) as object);
  const res = { setHeader: () => undefined, end } as unknown as Response;
  protectedResourceMetadata(gate)({ method: 'GET', url: WELL_KNOWN } as Request, res, () => undefined);
  return document;
}
