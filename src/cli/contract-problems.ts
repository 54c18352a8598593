import { commerceRouter } from '../app/commerce/router';
import { routes, SCOPES } from '../app/commerce/routes';
import { findDisagreements, findRouterDisagreements } from '../openapi/agreement';
import { loadContract } from '../openapi/load';

/**
 * Where the table of routes, the routers and openapi.yaml disagree; empty where they agree.
 *
 * @param file - default: the openapi.yaml of this package
 * @throws ConfigurationError when there is no contract to read
 */
export function contractProblems(file?: string): readonly string[] {
  const document = loadContract(file);
  return [...findDisagreements(document, routes(), SCOPES), ...findRouterDisagreements(document, commerceRouter())];
}
