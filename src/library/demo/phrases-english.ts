import type { PhrasesByTrade } from './phrases.ts';

const english = {
  launch: ['It’s finally here: {product}. 🎉', 'New at {brand}: {product}, made for everyday life.'],
  offer: [
    'This week only: {percent}% off {product}. ⏰',
    'Our biggest sale of the season just started, and it includes {product}.',
  ],
  proof: [
    '“I wish I had found {product} a year ago.” ⭐⭐⭐⭐⭐',
    'Over {thousands},000 people chose {product} this year. Here’s why.',
  ],
} satisfies Partial<Record<string, [string, string]>>;

const englishHeadlines: [string, string, string] = [
  '{product} | {percent}% off today',
  'Meet {product}',
  'Why everyone is talking about {product}',
];

export const englishPhrases = {
  en: {
    goods: {
      openings: {
        ...english,
        story: [
          'We made {tries} versions of {product} before we were happy.',
          'It started at a kitchen table. Today we send {product} all over the country.',
        ],
        question: [
          'Have you ever tried anything like {product}?',
          'Still putting up with second best? Meet {product}.',
        ],
      },
      headlines: englishHeadlines,
      offers: [
        'Use code HELLO{percent} at checkout for {percent}% off.',
        'Free shipping and {days}-day returns, no questions asked.',
      ],
      closings: ['👉 See it for yourself.', 'Limited stock. Get yours while it lasts.'],
    },
    apps: {
      openings: {
        ...english,
        launch: ['It’s finally here: {product}. 🎉', 'New from {brand}: {product}, on your phone and on the web.'],
        offer: [
          'This week only: {percent}% off your first year of {product}. ⏰',
          'Our biggest offer of the year just started, and it includes {product}.',
        ],
        story: [
          'We built {product} {tries} times before we kept it.',
          'It started as a spreadsheet at a kitchen table. Today it is {product}.',
        ],
        question: ['What if {product} could save you an hour every week?', 'Still doing it by hand? Meet {product}.'],
      },
      headlines: [
        '{product} | {percent}% off your first year',
        'Meet {product}',
        'Why everyone is talking about {product}',
      ],
      offers: [
        'Sign up with code HELLO{percent} and take {percent}% off the first year.',
        'Free for {days} days, no card needed.',
      ],
      closings: ['👉 Set up in two minutes.', 'Try it today and leave whenever you like.'],
    },
    games: {
      openings: {
        launch: ['It’s finally out: {product}. 🎉', 'New from {brand}: {product}, free to play.'],
        offer: [
          'This week only: a starter chest with {percent} free gems in {product}. ⏰',
          'The season of lanterns has begun in {product}, and the first reward is free.',
        ],
        proof: [
          '“I meant to play for five minutes. That was at lunch.” ⭐⭐⭐⭐⭐',
          'Over {thousands},000 players are in {product} already. Come and find out why.',
        ],
        story: [
          'We drew {tries} maps for {product} and kept the best one.',
          'Three friends and a kitchen table: that is how {product} began.',
        ],
        question: ['How far could you get in {product} by tonight?', 'Five minutes to spare? Try {product}.'],
      },
      headlines: ['{product}: play free', 'How far will you get?', 'Why everyone is playing {product}'],
      offers: [
        'Enter HELLO{percent} in the game for {percent} free gems.',
        'Start today and get {days} days of daily rewards.',
      ],
      closings: ['👉 Play now, on the phone you have.', 'Your island is waiting.'],
    },
    services: {
      openings: {
        ...english,
        launch: ['Now in your area: {product}. 🎉', 'New from {brand}: {product}, from first call to last screw.'],
        proof: [
          '“I wish we had asked about {product} a year ago.” ⭐⭐⭐⭐⭐',
          'Over {thousands},000 homes chose {product} this year. Here’s why.',
        ],
        story: [
          'We listened to {tries} families before we put together {product}.',
          'It started with one roof and one ladder. Today a crew of ninety stands behind {product}.',
        ],
        question: [
          'What would your bills look like with {product}?',
          'Still paying more every year? Ask us about {product}.',
        ],
      },
      headlines: [
        '{product} | {percent}% off this month',
        'Meet {product}',
        'Why the neighbors are talking about {product}',
      ],
      offers: [
        'Mention HELLO{percent} on the phone for {percent}% off the installation.',
        'Free quote, and {days} days to think it over.',
      ],
      closings: ['👉 See what it would cost you.', 'A few dates are left this month.'],
    },
  },
} satisfies Record<string, PhrasesByTrade>;
