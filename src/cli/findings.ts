import { installedVersion } from '../core/required-packages';
import { contractProblems } from './contract-problems';

/** One line of the doctor's report. */
export interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly detail: string;
  /** What to do; present when not ok. */
  readonly fix?: string;
}

/** Something that is as it should be. */
export function passed(check: string, detail: string): Finding {
  return { check, ok: true, detail };
}

/** Something that is not, with what to do. */
export function failed(check: string, detail: string, fix: string): Finding {
  return { check, ok: false, detail, fix };
}

const CONTRACT_PACKAGES = ['express', 'js-yaml'];

/** Whether the routes, their scopes and openapi.yaml agree. */
export function contractFinding(): Finding {
  if (CONTRACT_PACKAGES.some((name) => installedVersion(name) === undefined))
    return passed('contract', 'not checked: the scaffold is not in use');
  const problems = contractProblems();
  if (problems.length === 0) return passed('contract', 'routes, scopes and openapi.yaml agree');
  return failed(
    'contract',
    problems.join('; '),
    'change openapi.yaml or the table of resources until both say the same',
  );
}
