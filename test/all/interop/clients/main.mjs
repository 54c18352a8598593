import { replyToParent } from '../../setup/reply-to-parent.mjs';
import * as oauth4webapi from './oauth4webapi.mjs';
import * as openidClient from './openid-client.mjs';
import * as simpleOauth2 from './simple-oauth2.mjs';

// OAuth clients of other authors, each wrapped in functions of the same names; two of them do not load in Jest.
const libraries = { 'openid-client': openidClient, oauth4webapi, 'simple-oauth2': simpleOauth2 };

replyToParent({}, async ({ library, task, with: parameters }) => {
  try {
    return { result: await libraries[library][task](parameters) };
  } catch (error) {
    return { failure: await surfaced(error) };
  }
});

/** What the library tells its user, in words that survive the way to another process. */
async function surfaced(error) {
  const { name, code, message, status, response } = error;
  const challenges = Array.isArray(error.cause) ? error.cause : undefined;
  // The body of the response, if the library leaves reading it to its user: next to a challenge.
  const body = challenges && response.headers.get('content-type')?.includes('json') ? await response.json() : undefined;
  return { name, code, message, status, error: error.error, description: error.error_description, challenges, body };
}
