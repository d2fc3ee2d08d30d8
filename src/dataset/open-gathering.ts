import type { DatasetContents, Gathering, GatheringState, GatheringStep } from '../state/dataset.ts';
import { type GatheringQuestion, gatheringsOf, newGathering, partsOfQuestion } from './gatherings.ts';

export interface GatheringPart {
  question: GatheringQuestion;
  state: GatheringState;
}

/** A gathering as it stands: where it goes on in each of its parts. */
export interface OpenGathering {
  /** Of a gathering without `split` the same as its only part. */
  whole: GatheringState;
  parts: GatheringPart[];
}

/** Goes on with the newest gathering of each part, or starts all over. */
export function openGathering(
  question: GatheringQuestion,
  contents: DatasetContents,
  { fresh, now }: { fresh: boolean; now: number },
): OpenGathering {
  const newest = (about: GatheringQuestion): GatheringState => {
    const [known] = fresh ? [] : gatheringsOf(contents, about);
    return known ? stateOf(known) : newGathering(about, now);
  };
  const parts = partsOfQuestion(question).map((part) => ({ question: part, state: newest(part) }));
  const [only] = parts;
  if (question.split === undefined && only) return { whole: only.state, parts };
  const ids = parts.map(({ state }) => state.id);
  const known = newest(question);
  const isKnown = known.parts.join() === ids.join();
  return { whole: isKnown ? known : { ...newGathering(question, now), parts: ids }, parts };
}

const stateOf = ({ adIds: _, missing: __, complete: ___, ...state }: Gathering): GatheringState => state;

/**
 * Saves the steps of a gathering. Only when its first page is there are its parts saved, too: a new gathering that reads
 * nothing does not take the place of an earlier one.
 */
export function gatheringSaver(
  { whole, parts }: OpenGathering,
  save: (step: GatheringStep) => Promise<void>,
): (step: GatheringStep) => Promise<void> {
  let hasBegun = false;
  return async (step) => {
    const others = hasBegun
      ? []
      : [whole, ...parts.map(({ state }) => state)].filter((state) => isNew(state) && state.id !== step.id);
    hasBegun = true;
    for (const state of others) await save({ ...state, adIds: [] });
    await save(step);
  };
}

const isNew = ({ startedAt, gatheredAt, ended }: GatheringState) => startedAt === gatheredAt && !ended;
