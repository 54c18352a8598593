import 'reflect-metadata';
import { Controller, Get, Module, Req, RequestMethod } from '@nestjs/common';
import type { INestApplication, MiddlewareConsumer, NestModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { authenticate, requireScope } from 'tillgate';
import type { Auth, AuthenticateOptions } from 'tillgate';

@Controller('v1/orders')
class OrdersController {
  @Get()
  list(@Req() request: { readonly auth?: Auth }) {
    return { caller: request.auth?.clientId, data: [] };
  }
}

@Module({ controllers: [OrdersController] })
class AppModule implements NestModule {
  // One line per route: what it requires.
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(requireScope('orders:read')).forRoutes({ path: 'v1/orders', method: RequestMethod.GET });
  }
}

/** Makes the API. Without options for the gate, authenticate() reads the TILLGATE_* variables. */
export async function createApp(gate?: AuthenticateOptions): Promise<INestApplication> {
  const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
  // Global middleware runs before that of modules.
  app.use('/v1', authenticate(gate));
  return app;
}
