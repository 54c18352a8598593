import type { Request, RequestHandler } from 'express';
import { isLoopbackHost } from '../core/urls';
import { RefusedRequest } from './refused-request';
import { equalTexts } from './secrets';

/**
 * Makes the guard of everything that only an operator may do: with an admin token, whoever sends it; without one, this
 * machine alone, and no web page that a browser on it has open.
 */
export function adminGuard(adminToken: string | undefined): RequestHandler {
  return adminToken === undefined ? requireThisMachine : requireToken(adminToken);
}

function requireToken(adminToken: string): RequestHandler {
  return function requireAdminToken(req, _res, next) {
    const presented = /^Bearer +(\S+)$/i.exec(req.headers.authorization ?? '')?.[1];
    if (presented !== undefined && equalTexts(presented, adminToken)) return next();
    throw new RefusedRequest({
      status: 401,
      code: presented === undefined ? 'missing_token' : 'invalid_token',
      detail: 'Send the admin token of the token server: Authorization: Bearer <TILLGATE_ADMIN_TOKEN>.',
      // RFC 6750 section 3.1: no error code where no credentials came.
      headers: {
        'WWW-Authenticate': `Bearer realm="admin"${presented === undefined ? '' : ', error="invalid_token"'}`,
      },
    });
  };
}

const requireThisMachine: RequestHandler = function requireLoopback(req, _res, next) {
  if (!isLoopbackHost((req.socket.remoteAddress ?? '').replace(/^::ffff:/i, ''))) {
    throw forbidden('Without an admin token these addresses answer to this machine only: set TILLGATE_ADMIN_TOKEN.');
  }
  // A page under a foreign name that resolves to 127.0.0.1 (DNS rebinding) sends that name.
  if (!isLoopbackHost(hostnameOf(`http://${req.headers.host ?? ''}`))) {
    throw forbidden('The Host header must name this machine, such as 127.0.0.1 or localhost.');
  }
  if (req.headers.origin !== undefined && !isOwnOrigin(req)) {
    throw forbidden(
      'Pages of another origin may not use this API: call it from a program, or set TILLGATE_ADMIN_TOKEN.',
    );
  }
  next();
};

function isOwnOrigin(req: Request): boolean {
  return [`http://${req.headers.host}`, `https://${req.headers.host}`].includes(req.headers.origin ?? '');
}

function hostnameOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : '';
}

function forbidden(detail: string): RefusedRequest {
  return new RefusedRequest({ status: 403, code: 'forbidden', detail });
}
