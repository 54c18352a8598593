import { commerceRouter } from '../app/commerce/router';
import { routes, SCOPES } from '../app/commerce/routes';
import { findDisagreements, findRouterDisagreements } from '../app/contract/agreement';
import { loadContract } from '../app/contract/load';

/**
 * Where the table of routes, the routers and openapi.yaml disagree; empty where they agree.
 *
 * @throws ConfigurationError when there is no contract to read
 */
export function contractProblems(): readonly string[] {
  const document = loadContract();
  return [...findDisagreements(document, routes(), SCOPES), ...findRouterDisagreements(document, commerceRouter())];
}
