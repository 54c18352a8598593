import type { RequestHandler } from 'express';
import { sendProblem } from '../index';

/** The answer where no route is. */
export const notFound: RequestHandler = function notFound(req, res) {
  sendProblem(req, res, { status: 404, code: 'not_found', detail: 'There is nothing at this address.' });
};
