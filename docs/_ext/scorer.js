// How the search of the site ranks: whole headings, then guides, then the reference and what is for makers.
const LATER = /^(api|making)\/|^(changelog|guides|index)$/;

var Scorer = {
  score: ([page, , , , score, , kind]) => (score + (kind === "title" ? 10 : 0)) / (LATER.test(page) ? 4 : 1),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
