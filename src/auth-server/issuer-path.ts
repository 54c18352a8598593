import type { RequestHandler } from 'express';

/**
 * Serves an issuer that has a path, `https://login.example.com/tenant`, whether or not something in front takes the path
 * off: `/tenant/connect/token`, and the well-known addresses of RFC 8414 section 3.1 (path behind) and OpenID Connect
 * Discovery 1.0 section 4.1 (path in front).
 */
export function issuerPath(issuer: string): RequestHandler {
  const path = pathOfIssuer(issuer);

  function strip(url: string): string {
    if (url.startsWith(`${path}/`)) return url.slice(path.length);
    const [address = '', ...query] = url.split('?');
    if (!address.startsWith('/.well-known/') || !address.endsWith(path)) return url;
    return [address.slice(0, -path.length), ...query].join('?');
  }

  return function stripIssuerPath(req, _res, next) {
    if (path !== '') req.url = strip(req.url);
    next();
  };
}

/** The path of an issuer without a slash at its end: `/tenant`, or nothing. */
export function pathOfIssuer(issuer: string): string {
  return new URL(issuer).pathname.replace(/\/$/, '');
}
