import { open } from './orders-app';
import type { Bug } from './orders-app';

const SPELLING = 'stays closed under another spelling of its path';
const LIST = 'GET /v1/orders';

/** Bugs of gates and routers that read a path differently. */
export const BUGS_OF_PATHS: Readonly<Record<string, readonly [operation: string, sentence: string, bug: Bug]>> = {
  // https://github.com/chillzhuang/SpringBlade/issues/8: any path that contains /token
  'a gate that skips paths which contain a public one': [
    LIST,
    SPELLING,
    open((req) => req.originalUrl.includes('/health')),
  ],
  // https://raw.githubusercontent.com/CVEProject/cvelistV5/main/cves/2022/4xxx/CVE-2022-4874.json: Netcomm routers
  'a gate that skips static files by their extension': [
    LIST,
    SPELLING,
    open((req) => /\.(css|js|ico)$/.test(req.originalUrl)),
  ],
  // https://github.com/Drakon-Systems-Ltd/ShieldCortex/issues/474: /API/memories needed no token, in Express
  'a gate that compares paths with their case': [
    LIST,
    SPELLING,
    open((req) => !req.originalUrl.startsWith('/v1/orders')),
  ],
  // https://github.com/advisories/GHSA-6hw5-45gm-fj88: the router joins slashes and cuts parameters, the gate does not
  'a router that joins slashes after the gate': [
    LIST,
    SPELLING,
    {
      first: () => (req, _res, next) => {
        req.url = req.url.replace(/\/{2,}/g, '/');
        next();
      },
      ...open((req) => req.originalUrl.includes('//')),
    },
  ],
  // https://github.com/quarkusio/quarkus/pull/53930: /api;v=1/resource
  'a router that cuts parameters after the gate': [
    LIST,
    SPELLING,
    {
      first: () => (req, _res, next) => {
        req.url = req.url.replace(/;[^/?]*/g, '');
        next();
      },
      ...open((req) => req.originalUrl.includes(';')),
    },
  ],
  // CVE-2012-6431, https://symfony.com/blog/security-release-symfony-2-0-20-and-2-1-5-released
  'a router that decodes twice': [
    LIST,
    SPELLING,
    {
      first: () => (req, _res, next) => {
        req.url = req.url.replaceAll('%25', '%');
        req.url = decodeURIComponent(req.url);
        next();
      },
      ...open((req) => req.originalUrl.includes('%25')),
    },
  ],
  // https://raw.githubusercontent.com/CVEProject/cvelistV5/main/cves/2026/15xxx/CVE-2026-15704.json: Eclipse BaSyx
  'a gate that compares paths without the slash at the end': [
    LIST,
    SPELLING,
    open((req) => req.path !== '/' && req.originalUrl.endsWith('/')),
  ],
  // https://github.com/advisories/GHSA-g6q3-96cp-5r5m
  'a gate that decodes once more than the router': [
    LIST,
    SPELLING,
    {
      first: () => (req, _res, next) => {
        req.url = decodeURIComponent(req.url);
        next();
      },
      ...open((req) => req.originalUrl.includes('%6')),
    },
  ],
  // https://github.com/Apicurio/apicurio-registry/issues/2394: the old /api/ went around the check
  'an old version that is open': [
    LIST,
    SPELLING,
    {
      first: () => (req, _res, next) => {
        if (req.url.startsWith('/v0/')) {
          req.url = `/v1/${req.url.slice(4)}`;
          (req as { isOld?: boolean }).isOld = true;
        }
        next();
      },
      ...open((req) => (req as { isOld?: boolean }).isOld === true),
    },
  ],
};
