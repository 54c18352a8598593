import { commerceRouter } from '../app/commerce/router';
import { routes, SCOPES } from '../app/commerce/routes';
import { findDisagreements, findRouterDisagreements } from '../openapi/agreement';
import { loadContract } from '../openapi/load';

/**
 * Where the table of routes, the routers and openapi.yaml disagree; empty where they agree.
 *
 * @throws ConfigurationError when there is no contract to read
 */
export function contractProblems(): readonly string[] {
  const document = loadContract();
  return [...findDisagreements(document, routes(), SCOPES), ...findRouterDisagreements(document, commerceRouter())];
}
