/** Express alone: what everything else is a share of. */
export function mount(app, { answer }) {
  app.get('/v1/orders', answer);
}
