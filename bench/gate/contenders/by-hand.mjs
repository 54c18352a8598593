/** The code that an app needs around a library that only verifies. */
export function refuse(res, status, challenge) {
  res
    .status(status)
    .set('WWW-Authenticate', challenge)
    .json({ error: status === 401 ? 'invalid_token' : 'forbidden' });
}

export function hasScope(scope) {
  return function checkScope(req, res, next) {
    if (req.auth.scope?.split(' ').includes(scope)) return next();
    refuse(res, 403, `Bearer realm="api", error="insufficient_scope", scope="${scope}"`);
  };
}
