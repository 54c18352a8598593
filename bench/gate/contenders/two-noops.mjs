/** Express with two middlewares that do nothing, where a gate and a guard would stand: the least that any gate costs. */
export function mount(app, { answer }) {
  app.use('/v1', function nothing(_req, _res, next) {
    next();
  });
  app.get(
    '/v1/orders',
    function nothing(_req, _res, next) {
      next();
    },
    answer,
  );
}
