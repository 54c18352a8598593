/** Express alone: the base of all ratios. */
export function mount(app, { respond }) {
  app.get('/v1/orders', respond);
}
