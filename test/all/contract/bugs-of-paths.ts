import { LIST, foundBy, open } from './orders-app';
import type { Bug } from './orders-app';

/** A router that reads another path than the gate, which lets it pass where the caller has written it so. */
const rewriting = (rewrite: (url: string) => string, isOpen: Parameters<typeof open>[0]): Bug => ({
  first: () => (req, _res, next) => {
    req.url = rewrite(req.url);
    next();
  },
  ...open(isOpen),
});

/** Bugs of gates and routers that read a path differently. */
export const BUGS_OF_PATHS = foundBy(LIST, 'stays closed under another spelling of its path', {
  // https://github.com/chillzhuang/SpringBlade/issues/8: any path that contains /token
  'a gate that skips paths which contain a public one': open((req) => req.originalUrl.includes('/health')),
  // https://raw.githubusercontent.com/CVEProject/cvelistV5/main/cves/2022/4xxx/CVE-2022-4874.json: Netcomm routers
  'a gate that skips static files by their extension': open((req) => /\.(css|js|ico)$/.test(req.originalUrl)),
  // https://github.com/Drakon-Systems-Ltd/ShieldCortex/issues/474: /API/memories needed no token, in Express
  'a gate that compares paths with their case': open((req) => !req.originalUrl.startsWith('/v1/orders')),
  // https://github.com/advisories/GHSA-6hw5-45gm-fj88: the router joins slashes and cuts parameters, the gate does not
  'a router that joins slashes after the gate': rewriting(
    (url) => url.replace(/\/{2,}/g, '/'),
    (req) => req.originalUrl.includes('//'),
  ),
  // https://github.com/quarkusio/quarkus/pull/53930: /api;v=1/resource
  'a router that cuts parameters after the gate': rewriting(
    (url) => url.replace(/;[^/?]*/g, ''),
    (req) => req.originalUrl.includes(';'),
  ),
  // CVE-2012-6431, https://symfony.com/blog/security-release-symfony-2-0-20-and-2-1-5-released
  'a router that decodes twice': rewriting(
    (url) => decodeURIComponent(url.replaceAll('%25', '%')),
    (req) => req.originalUrl.includes('%25'),
  ),
  // https://raw.githubusercontent.com/CVEProject/cvelistV5/main/cves/2026/15xxx/CVE-2026-15704.json: Eclipse BaSyx
  'a gate that compares paths without the slash at the end': open(
    (req) => req.path !== '/' && req.originalUrl.endsWith('/'),
  ),
  // https://github.com/advisories/GHSA-g6q3-96cp-5r5m
  'a gate that decodes once more than the router': rewriting(decodeURIComponent, (req) =>
    req.originalUrl.includes('%6'),
  ),
  // https://github.com/Apicurio/apicurio-registry/issues/2394: the old /api/ went around the check
  'an old version that is open': rewriting(
    (url) => url.replace(/^\/v0\//, '/v1/'),
    (req) => req.originalUrl.startsWith('/v0/'),
  ),
});
