"""The pages of a questionnaire for participants (why no CSRF check: see `participant_views`)."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from surveys.models import Question, QuestionResponse
from surveys.participant_views import context_of, next_address, participant_page
from surveys.question_services import questions_respond
from surveys.questionnaire import QuestionsForm, name_of
from surveys.visits import Visit, visit_again


def _page(visit: Visit, place: str) -> list[Question]:
    """The questions of the page, if it is this participant's turn or was."""
    if place == "before":
        begun = visit.answers and not visit.unanswered(visit.facts.questions_at(Question.Place.BEFORE))
        return visit.facts.questions_at(Question.Place.BEFORE) if visit.is_open and not begun else []
    if place == "after":
        return visit.facts.questions_at(Question.Place.AFTER) if visit.is_finished else []
    if place.isascii() and place.isdigit() and len(place) < 5 and visit.is_open:
        reached = (visit.next_number or visit.total + 1) > int(place)
        return visit.facts.questions_at(Question.Place.BETWEEN, int(place)) if reached else []
    return []


@csrf_exempt  # see the module's docstring
@require_http_methods(["GET", "HEAD", "POST"])
@participant_page
def participant_questions(request: HttpRequest, visit: Visit, place: str) -> HttpResponse:
    """One page of questions. Responses can be changed for as long as the page can be reached."""
    questions = _page(visit, place)
    if not questions:
        return redirect("participant", visit.secret)
    language = visit.facts.instrument.language
    if request.method == "POST":
        form = QuestionsForm(request.POST, questions=questions, language=language)
        if form.is_valid():
            questions_respond(
                participant_id=visit.participant_id,
                sitting_id=visit.sitting_id,
                questions=questions,
                responses=form.responses(),
            )
            again = visit_again(visit)
            if place == "before" and again.is_open and not again.answers:
                return redirect("participant", visit.secret)
            return redirect(next_address(again))
    else:
        given = QuestionResponse.objects.filter(participant_id=visit.participant_id, question__in=questions)
        initial = {response.question_id: response.value for response in given}
        form = QuestionsForm(
            questions=questions,
            language=language,
            initial={name_of(question): initial.get(question.pk) for question in questions},
        )
    status = 422 if form.is_bound else 200
    return render(request, "surveys/questions.html", context_of(visit, form=form, place=place), status=status)
