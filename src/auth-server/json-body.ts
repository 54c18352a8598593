import express from 'express';
import type { RequestHandler } from 'express';
import { RefusedRequest } from './refused-request';

const LARGEST_BODY_BYTES = 16 * 1024;

/** Reads JSON bodies of up to 16 KiB; another media type is refused, so that no plain HTML form can reach the API. */
export function jsonBody(): RequestHandler[] {
  return [
    function requireJson(req, _res, next) {
      // `null`: there is no body. Programs that send none often say so: Content-Length: 0.
      if (req.is('application/json') !== false || req.get('content-length') === '0') return next();
      throw new RefusedRequest({
        status: 415,
        code: 'unsupported_media_type',
        detail: 'The body must be JSON: send it with Content-Type: application/json.',
      });
    },
    // Not strict: a number or a string gets the answer of any other body that is no object.
    express.json({ limit: LARGEST_BODY_BYTES, strict: false }),
  ];
}
