import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** passport with a strategy that lets everything pass: what passport itself costs. */
export function mount(app, { answer }) {
  const { Passport, Strategy } = require('passport');
  class Noop extends Strategy {
    name = 'noop';
    authenticate() {
      this.success({ id: 'till-1' });
    }
  }
  const passport = new Passport();
  passport.use(new Noop());
  app.use('/v1', passport.authenticate('noop', { session: false }));
  app.get('/v1/orders', answer);
}
