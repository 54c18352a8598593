import type { Request, RequestHandler } from 'express';
import { isLoopbackHost } from '../core/urls';
import { equalTexts } from './clients/secrets';
import { RequestError } from './errors';

/**
 * Makes the guard of the endpoints for operators. With an admin token, the caller must send it; without one, requests
 * must come from this machine, directly, and not from a page of another origin.
 */
export function adminGuard(adminToken: string | undefined): RequestHandler {
  return adminToken === undefined ? requireThisMachine : requireToken(adminToken);
}

function requireToken(adminToken: string): RequestHandler {
  return function requireAdminToken(req, _res, next) {
    const presented = /^Bearer +(\S+)$/i.exec(req.headers.authorization ?? '')?.[1];
    if (presented !== undefined && equalTexts(presented, adminToken)) return next();
    const message = 'Send the admin token of the token server: Authorization: Bearer <TILLGATE_ADMIN_TOKEN>.';
    // RFC 6750 section 3.1: no error code when the request has no credentials.
    const [code, error] =
      presented === undefined ? ['missing_token', ''] : ['invalid_token', ', error="invalid_token"'];
    throw new RequestError(401, code, message, { 'WWW-Authenticate': `Bearer realm="admin"${error}` });
  };
}

const requireThisMachine: RequestHandler = function requireLoopback(req, _res, next) {
  if (!isLoopbackHost((req.socket.remoteAddress ?? '').replace(/^::ffff:/i, ''))) {
    throw forbidden('Without an admin token only this machine may call these URLs: set TILLGATE_ADMIN_TOKEN.');
  }
  // A local proxy connects from loopback for callers anywhere.
  if (Object.keys(req.headers).some((name) => /^(forwarded|via|x-real-ip|x-forwarded-.*)$/.test(name))) {
    throw forbidden('Requests that came through a proxy need an admin token: set TILLGATE_ADMIN_TOKEN.');
  }
  // DNS rebinding: a page of a foreign host name that resolves to 127.0.0.1 sends that name.
  if (!isLoopbackHost(hostnameOf(`http://${req.headers.host ?? ''}`))) {
    throw forbidden('The Host header must name this machine, such as 127.0.0.1 or localhost.');
  }
  if (isFromForeignPage(req)) {
    throw forbidden(
      'Pages of another origin may not use this API: call it from a program, or set TILLGATE_ADMIN_TOKEN.',
    );
  }
  next();
};

/** Browsers send Origin with most requests, and Sec-Fetch-Site with all; programs send neither. */
function isFromForeignPage({ headers }: Request): boolean {
  const site = headers['sec-fetch-site'] ?? 'none';
  if (site !== 'none' && site !== 'same-origin') return true;
  const own = [`http://${headers.host}`, `https://${headers.host}`];
  return headers.origin !== undefined && !own.includes(headers.origin);
}

function hostnameOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : '';
}

function forbidden(message: string): RequestError {
  return new RequestError(403, 'forbidden', message);
}
