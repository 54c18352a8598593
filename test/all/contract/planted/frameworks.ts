import { createRequire } from 'node:module';
import type { RequestListener } from 'node:http';
import type { Call, Parts, Plan, Reply, Route } from './parcels';

/** A framework: how it refuses, and how it makes a listener of a plan. */
export interface Framework {
  readonly refuse: Parts['refuse'];
  readonly listener: (plan: Plan) => RequestListener | Promise<RequestListener>;
}

type Loose = any; // eslint-disable-line @typescript-eslint/no-explicit-any -- four frameworks whose types are not installed

function callOf(method: string, url: string, more: Pick<Call, 'headers' | 'body' | 'params'>): Call {
  const [path = '', query] = url.split('?', 2);
  return { method, url, path, query: new URLSearchParams(query), ...more };
}

async function runSteps(steps: Route['steps'], call: Call): Promise<Reply> {
  for (const step of steps) {
    const reply = await step(call);
    if (reply) return reply;
  }
  return { status: 404, body: { error: 'nothing here' } };
}

const typeOf = ({ body }: Reply): string => (typeof body === 'string' ? 'text/html' : 'application/json');
const textOf = ({ body }: Reply): string =>
  body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
const headersOf = (reply: Reply): Record<string, string> => ({
  ...(reply.body !== undefined && { 'content-type': typeOf(reply) }),
  ...reply.headers,
});

/** The frameworks; those that are not of this repository are in a folder where they were installed. */
export function frameworks(folder: string): Readonly<Record<string, Framework>> {
  const load = createRequire(`${folder}/index.cjs`);
  const own = createRequire(__filename);

  const express: Framework = {
    refuse: (status, scope) => ({
      status,
      headers: {
        'www-authenticate': `Bearer error="${status === 401 ? 'invalid_token' : 'insufficient_scope'}", scope="${scope}"`,
      },
      body: { error: status === 401 ? 'unauthorized' : 'forbidden' },
    }),
    listener({ first, routes }) {
      const make: Loose = own('express');
      const app = make();
      const reply = (res: Loose, one: Reply): void => res.status(one.status).set(headersOf(one)).send(textOf(one));
      const call = (req: Loose): Call =>
        callOf(req.method as string, req.originalUrl as string, {
          headers: req.headers,
          body: req.body,
          params: req.params ?? {},
        });
      app.use(make.json(), make.urlencoded());
      app.use(async (req: Loose, res: Loose, next: Loose) => {
        const early = await first(call(req));
        if (early) reply(res, early);
        else next();
      });
      for (const { method, path, steps } of routes) {
        app[method.toLowerCase()](path, async (req: Loose, res: Loose) => reply(res, await runSteps(steps, call(req))));
      }
      app.use((error: Loose, _req: Loose, res: Loose, _next: Loose) =>
        res.status(error.status ?? 500).json({ error: 'wrong' }),
      );
      return app;
    },
  };

  const koa: Framework = {
    refuse: (status) => ({
      status,
      headers: { 'content-type': 'text/plain', 'www-authenticate': 'Bearer' },
      body: 'no',
    }),
    listener({ first, routes }) {
      const [Koa, Router, parser]: Loose[] = ['koa', '@koa/router', 'koa-bodyparser'].map((name) => load(name));
      const app = new (Koa.default ?? Koa)();
      app.silent = true;
      const router = new (Router.default ?? Router.Router ?? Router)();
      const reply = (ctx: Loose, one: Reply): void => {
        ctx.status = one.status;
        if (one.body !== undefined) ctx.body = textOf(one);
        ctx.set(headersOf(one));
      };
      const call = (ctx: Loose): Call =>
        callOf(ctx.method as string, ctx.originalUrl as string, {
          headers: ctx.headers,
          body: ctx.request.body,
          params: ctx.params ?? {},
        });
      app.use((parser.default ?? parser)({ enableTypes: ['json', 'form'] }));
      app.use(async (ctx: Loose, next: Loose) => {
        const early = await first(call(ctx));
        if (early) reply(ctx, early);
        else await next();
      });
      for (const { method, path, steps } of routes) {
        router[method === 'DELETE' ? 'delete' : method.toLowerCase()](path, async (ctx: Loose) =>
          reply(ctx, await runSteps(steps, call(ctx))),
        );
      }
      app.use(router.routes()).use(router.allowedMethods());
      return app.callback();
    },
  };

  const fastify: Framework = {
    refuse: (status) => ({
      status,
      headers: { 'www-authenticate': 'Bearer realm="parcels"' },
      body: { statusCode: status, error: status === 401 ? 'Unauthorized' : 'Forbidden', message: 'not for you' },
    }),
    async listener({ first, routes }) {
      const make: Loose = load('fastify');
      const app = (make.default ?? make)({ routerOptions: { ignoreTrailingSlash: true } });
      const reply = (res: Loose, one: Reply): unknown => res.code(one.status).headers(headersOf(one)).send(textOf(one));
      const call = (req: Loose): Call =>
        callOf(req.raw.method as string, req.raw.url as string, {
          headers: req.headers,
          body: req.body,
          params: req.params ?? {},
        });
      app.addHook('preHandler', async (req: Loose, res: Loose) => {
        const early = await first(call(req));
        if (early) await reply(res, early);
      });
      for (const { method, path, steps } of routes) {
        app.route({
          method,
          url: path,
          handler: async (req: Loose, res: Loose) => reply(res, await runSteps(steps, call(req))),
        });
      }
      await app.ready();
      return (req, res) => app.routing(req, res);
    },
  };

  const hono: Framework = {
    refuse: (status, scope) => ({
      status,
      headers: { 'content-type': 'application/problem+json', 'www-authenticate': `Bearer scope="${scope}"` },
      body: { type: 'about:blank', status, title: 'Refused' },
    }),
    listener({ first, routes }) {
      const { Hono }: Loose = load('hono');
      const { getRequestListener }: Loose = load('@hono/node-server');
      const app = new Hono({ strict: false });
      const reply = (one: Reply): Response =>
        new Response(one.body === undefined ? null : textOf(one), { status: one.status, headers: headersOf(one) });
      const call = async (c: Loose): Promise<Call> => {
        const text = ['GET', 'HEAD'].includes(c.req.method as string) ? '' : await c.req.text();
        const parsed = attemptJson(text as string);
        return callOf(c.req.method as string, c.env.incoming.url as string, {
          headers: c.req.header(),
          body: parsed,
          params: c.req.param(),
        });
      };
      app.onError((_error: Loose, c: Loose) => c.json({ error: 'wrong' }, 500));
      app.use('*', async (c: Loose, next: Loose) => {
        const early = await first(await call(c));
        if (early) return reply(early);
        return next();
      });
      for (const { method, path, steps } of routes) {
        app.on(method, path, async (c: Loose) => reply(await runSteps(steps, await call(c))));
      }
      return getRequestListener(app.fetch);
    },
  };
  return { Express: express, Koa: koa, Fastify: fastify, Hono: hono };
}

function attemptJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
